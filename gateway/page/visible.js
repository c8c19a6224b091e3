// Characters that people cannot see or that change the direction of text: see package internal/terminal,
// which has the same rule.
const hidden = /\r\n|(?<!\p{So})[\ufe0e\ufe0f]|(?![\n\t\ufe0e\ufe0f])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

// visible shows hidden characters as JSON escapes, like \\u202e, which leave the value of JSON unchanged.
export const visible = (text) => text.replace(hidden, (found) => (found === "\r\n" ? "\n" : escape(found)));

const escape = (character) => character.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
