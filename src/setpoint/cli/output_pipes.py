"""Standard output and standard error after their reader is gone: what is written is dropped, and the command goes on.

Loaded before everything else, also by `setpoint --help`: it imports no more than the interpreter has loaded already.
"""

import io
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What a shell says of a process that SIGPIPE ended: 128 and the number of the signal.
BROKEN_PIPE_CODE = 141


class PipeWriter(io.FileIO):
    """A file descriptor to write to. When the reader of a pipe is gone, it is broken: what is written is dropped."""

    is_broken = False

    def write(self, data: "ReadableBuffer", /) -> int:
        """See FileIO."""
        if not self.is_broken:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.is_broken = True
        return memoryview(data).nbytes


class OutputPipes:
    """Standard output and standard error of this process, from here on. A stream that is closed is left alone."""

    def __init__(self) -> None:
        self._writers: list[PipeWriter] = []
        sys.stdout = self._opened_again(sys.stdout)
        sys.stderr = self._opened_again(sys.stderr)

    @property
    def are_broken(self) -> bool:
        """Whether anything could not be written because its reader was gone."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # Any other error is left to the interpreter, which writes the rest when it ends.
                try:
                    stream.flush()
                except (OSError, ValueError):
                    continue
        return any(writer.is_broken for writer in self._writers)

    def _opened_again(self, stream: "io.TextIOWrapper | object") -> io.TextIOWrapper:
        """The same stream, which drops what its reader does not take any more."""
        if not isinstance(stream, io.TextIOWrapper):
            return stream  # type: ignore[return-value]  # None, or a stream of an embedding program
        try:
            stream.flush()
            writer = PipeWriter(stream.fileno(), "w", closefd=False)
        except (OSError, ValueError):
            # It is closed, or in memory.
            return stream
        self._writers.append(writer)
        # Without a buffer where the interpreter has none: PYTHONUNBUFFERED.
        buffer = writer if stream.write_through else io.BufferedWriter(writer)
        return io.TextIOWrapper(
            buffer,
            stream.encoding,
            stream.errors,
            newline="\n",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )


def output_pipe() -> PipeWriter | None:
    """The pipe that standard output is; None when it is a terminal, a file, or replaced."""
    buffer = getattr(sys.stdout, "buffer", None)
    writer = buffer if isinstance(buffer, PipeWriter) else getattr(buffer, "raw", None)
    if not isinstance(writer, PipeWriter) or not stat.S_ISFIFO(os.fstat(writer.fileno()).st_mode):
        return None
    return writer
