// The share link by which the page was opened, if any. It reads one context, and is sent with each request.

const PREFIX = "#share=";
const credential = location.hash.startsWith(PREFIX) ? location.hash.slice(PREFIX.length) : "";

export const isShared = credential !== "";
export const authorization = isShared ? { Authorization: `Bearer ${credential}` } : {};

// isReadable reports whether the link may read a URL.
export const isReadable = (url) => !isShared || url.startsWith("contexts/");

// The page of another link begins anew.
addEventListener("hashchange", () => {
  if (isShared || location.hash.startsWith(PREFIX)) location.reload();
});
