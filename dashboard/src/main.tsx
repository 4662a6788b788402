/** Starts the page. */
import { render } from "preact";
import "./styles/page.css";
import { Page } from "./page/page";
import { start } from "./page/state";

const root = document.getElementById("page");
if (root !== null) {
  render(<Page />, root);
  void start();
}
