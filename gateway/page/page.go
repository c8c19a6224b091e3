// Package page is the web page of the gateway: it shows contexts, follows their
// conversations as they are written, and sends what is typed.
//
//	mux.Handle("GET /", page.Handler())
//
// The page is static: index.html, style.css, and ES modules that browsers load as
// they are. app.js names the modules and says what each is for; lib has libraries,
// see lib/README.md. All else it asks the gateway for, below contexts/.
//
// # Guarantees
//
//   - What others wrote never becomes code. Text is put into text nodes; Markdown
//     goes through one function, render in markdown.js, which shows HTML as it was
//     written and lets links lead to the web or to mail only. Should that be mistaken,
//     the Content-Security-Policy runs no script but those of this package, fetches
//     nothing from elsewhere, and takes no string for HTML.
//   - The work for a piece of an answer depends neither on how long the answer is
//     already, nor on how long the conversation is.
//   - After a lost connection the page goes on from the version that it has. It sends
//     a message until the gateway has taken or refused it, always with the same
//     Idempotency-Key, so the message is in the log once.
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

// policy is the Content-Security-Policy. A string becomes HTML only in DOMPurify,
// which makes it harmless (https://w3c.github.io/trusted-types/).
var policy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"connect-src 'self'",
	"img-src 'self' data: blob:",
	"frame-ancestors 'none'",
	"base-uri 'none'",
	"form-action 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types dompurify",
}, "; ")

// types are the media types of the files. Those of the system differ, and some
// systems call a script text.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	"":      "text/plain; charset=utf-8", // licences
}

type file struct {
	content   []byte
	mediaType string
	tag       string
}

// Handler serves the page at /, to browsers that ask each time whether it is still
// the same.
func Handler() http.Handler {
	served := map[string]file{}
	// An embedded file system can be read.
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
