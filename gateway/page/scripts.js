// The scripts that the page loads when it needs them. The Content-Security-Policy allows no other address.

const addresses = { highlighter: "highlighter.js", temml: "lib/temml/temml.min.js" };

const policy = globalThis.trustedTypes?.createPolicy("scripts", { createScriptURL: (name) => addresses[name] });

// scriptURL returns what a browser takes for the address of a script.
export const scriptURL = (name) => (policy ? policy.createScriptURL(name) : addresses[name]);
