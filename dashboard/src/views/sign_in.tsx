/** Asks for a token: the one that was printed with the address, or that of a user of the cluster. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { Icon } from "../components/icon";
import { open, signInError, tryToken } from "../page/state";

export function SignInView() {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isBearer, setBearer] = useState(false);
  useEffect(() => void api.signIn().then((found) => setBearer(found.signIn === "bearer"), () => undefined), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    if (await tryToken(token.trim())) await open();
    setBusy(false);
    setToken("");
  };
  return (
    <main class="sign-in" id="main">
      <form onSubmit={(event) => void submit(event)}>
        <h1><Icon name="target" />setpoint</h1>
        <p class="muted">{isBearer ? "Sign in with a bearer token of the cluster. You see the namespaces that it may read." : "Open the address that the command printed, or enter its token. It works once; the command then prints the next."}</p>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} required value={token} onInput={(event) => setToken(event.currentTarget.value)} aria-describedby={signInError.value ? "sign-in-error" : undefined} aria-invalid={signInError.value !== null} />
        <p id="sign-in-error" class="form-error" role="alert">{signInError.value ?? ""}</p>
        <button type="submit" class="button primary" disabled={isBusy}>Sign in</button>
      </form>
    </main>
  );
}
