# Both stages start from the same image: the environment that is made in the first runs in the second. By its digest, that
# of the index of all platforms, a registry can return no other bytes; the tag before it is for readers.
ARG PYTHON_IMAGE=python:3.13.14-slim-bookworm@sha256:67a1e1f215ccda113cfc024e8639049257e88f273898f595b61476d128d387e8

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
# Every package is checked against its hash, and none is compiled here.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ONLY_BINARY=:all:
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv --without-pip /build
RUN python -m venv --without-pip /opt/setpoint
RUN python -m pip --python /build/bin/python install --no-deps --require-hashes -r requirements/build.txt
RUN python -m pip --python /opt/setpoint/bin/python install --no-deps --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m pip --python /build/bin/python wheel --no-index --no-deps --no-build-isolation --wheel-dir /dist .
RUN python -m pip --python /opt/setpoint/bin/python install --no-index --no-deps --find-links /dist setpoint

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
# The commit that it is built from: a label, and what `setpoint_build_info` shows.
ARG REVISION=unknown
LABEL org.opencontainers.image.title="setpoint" \
      org.opencontainers.image.description="Keeps cloud and Kubernetes resources as they were declared." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /opt/setpoint /opt/setpoint
# All is compiled already, and in a cluster nothing can be written: the root file system is read-only there.
ENV PATH=/opt/setpoint/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    SETPOINT_REVISION=${REVISION}
# By number: a cluster cannot tell from a name that it is not root.
USER 65532:65532
ENTRYPOINT ["/opt/setpoint/bin/setpoint"]
CMD ["--help"]
