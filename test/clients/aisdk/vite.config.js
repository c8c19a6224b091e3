// SDK=6 builds the page with version 6 of the SDK.
import { defineConfig } from "vite";

const is6 = process.env.SDK === "6";
export default defineConfig({
  base: "./",
  logLevel: "error",
  build: { outDir: process.env.OUT, emptyOutDir: true, target: "esnext", modulePreload: false },
  define: { "import.meta.env.VITE_API": is6 ? '"/api/v6/chat"' : "undefined" },
  resolve: { alias: is6 ? { "@ai-sdk/react": "ai-sdk-react-6", ai: "ai-6" } : {}, preserveSymlinks: true },
});
