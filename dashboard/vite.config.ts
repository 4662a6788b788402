/** The build: few files with fixed names, so that a build of the same sources is the same bytes. */
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core", "@dagrejs/dagre", "@dagrejs/graphlib"];

/** The licences of what is bundled go with it. */
function licences(): Plugin {
  return {
    name: "setpoint-licences",
    generateBundle() {
      const texts = BUNDLED.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf-8").trim()}\n`);
      this.emitFile({ type: "asset", fileName: "licenses.txt", source: texts.join("\n---\n\n") });
    },
  };
}

export default defineConfig(
  async ({ mode }): Promise<ViteUserConfig> => ({
    base: "./",
    plugins: mode === "fixtures" ? [(await import("./dev/fixture_server.ts")).fixtureServer()] : [licences()],
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    worker: { format: "es", rollupOptions: { output: { entryFileNames: "layout.js" } } },
    build: {
      outDir: "../src/setpoint/dashboard/static",
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rollupOptions: {
        output: { entryFileNames: "app.js", chunkFileNames: "[name].js", assetFileNames: "app[extname]" },
      },
    },
    test: { include: ["tests/**/*.test.ts"], environment: "node" },
  }),
);
