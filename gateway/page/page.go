// Package page is the web page of the gateway. It lists contexts, renders their conversations while
// they stream, and sends messages.
//
//	mux.Handle("GET /", page.Handler())
//
// The page consists of static files and ES modules without a build step. app.js lists the modules,
// lib/README.md the third-party libraries.
//
// # Guarantees
//
//   - Content never becomes code. Text becomes text nodes. Markdown goes through render in
//     markdown.js, which shows HTML as text and allows only web and mail links. As defense in
//     depth, the Content-Security-Policy allows only the scripts of this package, no external
//     requests and no HTML from strings.
//   - The cost of a delta is independent of the length of the answer and the conversation.
//   - A reconnected page resumes from its version.
//   - A message is recorded once: it has the same Idempotency-Key until the gateway answers.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed index.html *.js style.css icon.svg lib/*/*
var files embed.FS

// policy is the Content-Security-Policy. Only DOMPurify may turn strings into HTML, and only scripts.js
// into addresses of scripts (https://w3c.github.io/trusted-types/).
var policy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"connect-src 'self'",
	"img-src 'self' data: blob:",
	"media-src 'self'",
	"frame-ancestors 'none'",
	"base-uri 'none'",
	"form-action 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types dompurify scripts",
}, "; ")

// The types of package mime depend on the system.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	"":      "text/plain; charset=utf-8", // licenses
}

type file struct {
	content   []byte
	mediaType string
	tag       string
}

// Handler serves the page at /. Browsers revalidate cached files on each load.
func Handler() http.Handler {
	served := map[string]file{}
	// Reading an embedded file system cannot fail.
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, _ error) error {
		if entry.IsDir() {
			return nil
		}
		content, _ := files.ReadFile(name)
		sum := sha256.Sum256(content)
		served["/"+name] = file{content, types[path.Ext(name)], `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	served["/"] = served["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		header.Set("Content-Type", f.mediaType)
		header.Set("ETag", f.tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
	})
}
