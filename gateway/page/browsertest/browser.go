// Package browsertest runs pages in headless Chromium for tests.
//
//	func TestMain(m *testing.M) {
//		defer browsertest.Stop()
//		m.Run()
//	}
//
//	tab := browsertest.Start(t).Open(server.URL)
//	tab.Type("#text", "Hello\r")
//	tab.Await(`document.querySelector(".assistant-message")`)
//
// The tests of a package share one Chromium process with a browser context each. A test fails if a
// script throws or the page violates its Content-Security-Policy.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const timeout = time.Minute // for each wait; it only detects hangs

// process is the shared Chromium, which ends with this process, when its debugging pipe closes.
var process struct {
	sync.Mutex
	ctx  context.Context // nil: not started
	stop func()
}

// Stop stops Chromium and removes its files. Call it in TestMain after the tests.
func Stop() {
	process.Lock()
	defer process.Unlock()
	if process.ctx != nil {
		process.stop()
		process.ctx = nil
	}
}

// chromium also restarts a Chromium that crashed.
func chromium(path string) (context.Context, error) {
	process.Lock()
	defer process.Unlock()
	if process.ctx != nil && process.ctx.Err() == nil {
		return process.ctx, nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		// The defaults, and the spare renderer of each context.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"),
		chromedp.Flag("force-color-profile", "srgb"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		stop()
		return nil, err
	}
	process.ctx, process.stop = ctx, func() {
		cancel()
		stop()
	}
	return ctx, nil
}

// Browser is a browser context: it has its own storage, cookies and cache.
type Browser struct {
	tb  testing.TB
	ctx context.Context
	id  cdp.BrowserContextID
}

// Start returns a browser for the test. It skips the test without Chromium, so call it before
// registering cleanup checks.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	ctx, err := chromium(find(tb))
	if err != nil {
		tb.Fatalf("start Chromium: %v", err)
	}
	created, err := chromedp.CallBrowser(ctx, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		tb.Fatalf("create a browser context: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if _, err := chromedp.CallBrowser(ctx, target.DisposeBrowserContext,
			target.DisposeBrowserContextParams(created)); err != nil {
			tb.Errorf("dispose of a browser context: %v", err)
		}
	})
	return &Browser{tb, ctx, created.BrowserContextID}
}

func find(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	tb.Skip("browser tests, no Chromium on PATH")
	return ""
}

// Tab is a page in a tab. Its methods fail the test on an error.
type Tab struct {
	tb  testing.TB
	ctx context.Context

	mu       sync.Mutex
	troubles []string
}

// Open opens a page in a new tab of 1200 by 800 pixels.
func (b *Browser) Open(url string) *Tab {
	b.tb.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithExistingBrowserContext(b.id))
	t := &Tab{tb: b.tb, ctx: ctx}
	b.tb.Cleanup(func() {
		cancel()
		for _, trouble := range t.Troubles() {
			b.tb.Errorf("the page: %s", trouble)
		}
	})
	if err := chromedp.Listen(ctx, t.listen); err != nil {
		b.tb.Fatalf("open a tab: %v", err)
	}
	call(t, cdplog.Enable, cdp.Empty{})
	// Otherwise background tabs do not render.
	call(t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	t.emulateMedia()
	t.run(chromedp.EmulateViewport(1200, 800), chromedp.Navigate(url))
	return t
}

// listen ignores network errors, which are part of many tests.
func (t *Tab) listen(event any) {
	var trouble string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		trouble = e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			trouble += ": " + thrown.Description
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			trouble = e.Entry.Text
		}
	}
	if trouble != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.troubles = append(t.troubles, trouble)
	}
}

// Troubles returns and clears the recorded errors.
func (t *Tab) Troubles() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.troubles
	t.troubles = nil
	return out
}

func (t *Tab) run(steps ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.tb.Fatalf("in the browser: %v", err)
	}
}

func call[P any](t *Tab, command cdp.Command[P, cdp.Empty], params P) {
	t.tb.Helper()
	if _, err := chromedp.Call(t.ctx, command, params); err != nil {
		t.tb.Fatalf("%s: %v", command.Method, err)
	}
}

// Eval evaluates a JavaScript expression, awaits a promise, and decodes the JSON of the result.
func (t *Tab) Eval(expression string, into any) {
	t.tb.Helper()
	text, err := t.promised("(async () => JSON.stringify(await (" + expression + ")))()")
	if err != nil {
		t.tb.Fatalf("%s: %v", expression, err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.tb.Fatalf("%s is %s: %v", expression, text, err)
	}
}

// Await evaluates an expression every 15 ms until it is true; an exception counts as false. Unlike
// an animation frame, this renders nothing.
func (t *Tab) Await(expression string) {
	t.tb.Helper()
	t.await(expression, "scheduler.postTask(look, { delay: 15 })") // some tests replace setTimeout
}

// await returns the JSON of the value. Again is a statement that schedules the next look.
func (t *Tab) await(expression, again string) string {
	t.tb.Helper()
	value, err := t.promised(`new Promise((resolve) => {
		const value = () => {
			try {
				return (` + expression + `);
			} catch {
				return false;
			}
		};
		const look = () => {
			const found = value();
			if (found) resolve(JSON.stringify(found) ?? "");
			else ` + again + `;
		};
		look();
	})`)
	if err != nil {
		seen, _ := t.promised("Promise.resolve(document.body.innerText)")
		t.tb.Fatalf("await %s: %v\nText of the page:\n%s", expression, err, seen)
	}
	return value
}

func (t *Tab) promised(promise string) (string, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](promise, chromedp.EvalAwaitPromise))
}

// Text returns the visible text of each match.
func (t *Tab) Text(selector string) []string {
	t.tb.Helper()
	var texts []string
	t.Eval(fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.innerText.trim())", selector), &texts)
	return texts
}

// Type focuses the first match of a selector and presses keys; "\r" is Enter.
func (t *Tab) Type(selector, text string) {
	t.tb.Helper()
	t.Await(fmt.Sprintf(focused, selector))
	t.Press(text)
}

// focused focuses an element and is true when it has the focus.
const focused = `((element) => {
	element.focus();
	return document.activeElement === element;
})(document.querySelector(%q))`

// Press presses one key per character. Package kb has keys without a character.
func (t *Tab) Press(keys string) {
	t.tb.Helper()
	t.PressWith(kb.ModifierNone, keys)
}

// PressWith is Press with another key held down.
func (t *Tab) PressWith(held kb.Modifier, keys string) {
	t.tb.Helper()
	for _, key := range keys {
		events := kb.Encode(key)
		down, up := events[0], events[len(events)-1]
		if len(events) == 3 {
			// A separate char event would bypass preventDefault of the keydown.
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []*input.DispatchKeyEventParams{down, up} {
			e.Modifiers |= int64(held)
			call(t, input.DispatchKeyEvent, *e)
		}
	}
}

// Click clicks the first match of a selector. Like Playwright, it waits until the element is
// visible, stable for two frames, and not covered.
func (t *Tab) Click(selector string) {
	t.tb.Helper()
	var at struct{ X, Y float64 }
	if err := json.Unmarshal([]byte(t.await(fmt.Sprintf(clickable, selector), "requestAnimationFrame(look)")), &at); err != nil {
		t.tb.Fatalf("click %s: %v", selector, err)
	}
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		call(t, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, ClickCount: 1,
		})
	}
}

// clickable is the point where an element can be clicked. The element stores its previous frame.
const clickable = `((element) => {
	element.scrollIntoView({ block: "nearest", behavior: "instant" });
	const { x, y, width, height } = element.getBoundingClientRect();
	const place = [x, y, width, height].join();
	element.framesInPlace = element.lastPlace === place ? element.framesInPlace + 1 : 0;
	element.lastPlace = place;
	const middle = { x: x + width / 2, y: y + height / 2 };
	return element.framesInPlace >= 2 && element.contains(document.elementFromPoint(middle.x, middle.y)) && middle;
})(document.querySelector(%q))`

// Before runs JavaScript before the scripts of each page that is loaded later.
func (t *Tab) Before(statements string) {
	t.tb.Helper()
	if _, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: statements}); err != nil {
		t.tb.Fatalf("before a page: %v", err)
	}
}

// Reload reloads the page.
func (t *Tab) Reload() {
	t.tb.Helper()
	t.run(chromedp.Reload())
}

// Attach selects files in the file input that matches a selector.
func (t *Tab) Attach(selector string, paths ...string) {
	t.tb.Helper()
	found, err := chromedp.Call(t.ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: fmt.Sprintf("document.querySelector(%q)", selector)})
	if err != nil {
		t.tb.Fatalf("attach to %s: %v", selector, err)
	}
	call(t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: found.Result.ObjectID})
}

// Do runs JavaScript statements, which may use await.
func (t *Tab) Do(statements string) {
	t.tb.Helper()
	if _, err := t.promised("(async () => {" + statements + "; return \"\"})()"); err != nil {
		t.tb.Fatalf("%s: %v", statements, err)
	}
}

// emulateMedia also reduces motion: an endless animation would render sixty frames per second and
// change screenshots.
func (t *Tab) emulateMedia(features ...*emulation.MediaFeature) {
	t.tb.Helper()
	features = append(features, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

// Look is the appearance of a page.
type Look struct {
	Width, Height int64 // of the viewport, in pixels
	Dark          bool  // color scheme
}

// As changes the look of the page and waits until it has changed.
func (t *Tab) As(l Look) {
	t.tb.Helper()
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	t.run(chromedp.EmulateViewport(l.Width, l.Height))
	t.emulateMedia(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
	t.Await(fmt.Sprintf("innerWidth === %d && innerHeight === %d && matchMedia('(prefers-color-scheme: %s)').matches", l.Width, l.Height, scheme))
}

// Screenshot writes the visible part of the page to a PNG file.
func (t *Tab) Screenshot(path string) {
	t.tb.Helper()
	png, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.tb.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		t.tb.Fatal(err)
	}
}
