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
// The tests of a package share one Chromium, and a test takes the tab of an earlier one. A test fails
// if a script throws or the page violates its Content-Security-Policy.
package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const timeout = time.Minute // for each wait; it only detects hangs

// chromium starts the shared Chromium, which ends with this process, when its debugging pipe closes.
var chromium = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(find()),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("ignore-certificate-errors", true), // certificates of tests are self-signed
		// A process for each page of a test costs more than the test.
		chromedp.Flag("process-per-site", true),
		chromedp.Flag("disable-site-isolation-trials", true),
		chromedp.Flag("in-process-gpu", true),
		// The defaults, and features that start further renderers.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess,ProactivelySwapBrowsingInstance,BackForwardCache"),
		chromedp.Flag("force-color-profile", "srgb"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop = func() {
		cancel()
		stopAllocator()
	}
	return ctx, chromedp.Do(ctx)
})

var stop = func() {}

// Stop stops Chromium and removes its files. Call it in TestMain after the tests.
func Stop() { stop() }

func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser opens tabs for a test.
type Browser struct{ tb testing.TB }

// Start returns a browser for the test. It skips the test without Chromium, so call it before
// registering cleanup checks.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	if find() == "" {
		tb.Skip("browser tests, no Chromium on PATH")
	}
	return &Browser{tb}
}

// Tab is a page in a tab. Its methods fail the test on an error.
type Tab struct {
	tb      testing.TB
	ctx     context.Context
	close   context.CancelFunc
	scripts []page.ScriptIdentifier // of Before

	mu       sync.Mutex
	troubles []string
}

// idle are the tabs of earlier tests. A page in a new tab costs twice as much CPU.
var idle struct {
	sync.Mutex
	tabs []*Tab
}

// Open opens a page in a tab of 1200 by 800 pixels. Its origin must be that of no other test: a tab has
// the storage of its origin to itself until the end of the test.
func (b *Browser) Open(url string) *Tab {
	b.tb.Helper()
	idle.Lock()
	var t *Tab
	if n := len(idle.tabs); n > 0 {
		t, idle.tabs = idle.tabs[n-1], idle.tabs[:n-1]
	}
	idle.Unlock()
	if t == nil {
		t = newTab(b.tb)
	}
	t.tb = b.tb
	b.tb.Cleanup(t.leave)
	t.emulateMedia()
	t.run(chromedp.EmulateViewport(1200, 800), chromedp.Navigate(url))
	return t
}

func newTab(tb testing.TB) *Tab {
	tb.Helper()
	browser, err := chromium()
	if err != nil {
		tb.Fatalf("start Chromium: %v", err)
	}
	t := &Tab{tb: tb}
	t.ctx, t.close = chromedp.NewContext(browser)
	if err := chromedp.Listen(t.ctx, t.listen); err != nil {
		tb.Fatalf("open a tab: %v", err)
	}
	// Otherwise background tabs do not render.
	call(t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	// Nothing here reads their events, which are a fifth of the work of the test's process.
	call(t, network.Disable, cdp.Empty{})
	call(t, css.Disable, cdp.Empty{})
	return t
}

// leave makes the tab idle. A failed test can leave it in any state, so its tab is closed.
func (t *Tab) leave() {
	for _, trouble := range t.Troubles() {
		t.tb.Errorf("the page: %s", trouble)
	}
	if t.tb.Failed() {
		t.close()
		return
	}
	t.Do(`
		try { localStorage.clear(); sessionStorage.clear() } catch {}
		addEventListener("beforeunload", (e) => e.stopImmediatePropagation(), true)`)
	for _, id := range t.scripts {
		call(t, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: id})
	}
	t.scripts = nil
	t.run(chromedp.Navigate("about:blank"))
	idle.Lock()
	defer idle.Unlock()
	idle.tabs = append(idle.tabs, t)
}

// Run runs a step of the test as a subtest.
func (t *Tab) Run(name string, step func(*testing.T)) {
	test := t.tb.(*testing.T)
	defer func() { t.tb = test }()
	test.Run(name, func(sub *testing.T) {
		t.tb = sub
		step(sub)
	})
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

// Await evaluates an expression every 15 ms until it is true; an exception counts as false. It
// continues on the page that the tab goes to. Unlike an animation frame, this renders nothing.
func (t *Tab) Await(expression string) {
	t.tb.Helper()
	t.await(expression, "scheduler.postTask(look, { delay: 15 })") // some tests replace setTimeout
}

// await returns the JSON of the value. Again is a statement that schedules the next look.
func (t *Tab) await(expression, again string) string {
	t.tb.Helper()
	promise := `new Promise((resolve) => {
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
	})`
	value, err := t.promised(promise)
	for began := time.Now(); err != nil && hasNavigated(err) && time.Since(began) < timeout; {
		value, err = t.promised(promise)
	}
	if err != nil {
		seen, _ := t.promised("Promise.resolve(document.body.innerText)")
		t.tb.Fatalf("await %s: %v\nText of the page:\n%s", expression, err, seen)
	}
	return value
}

// hasNavigated reports whether an evaluation failed because the tab went to another page.
func hasNavigated(err error) bool {
	return strings.Contains(err.Error(), "Inspected target navigated or closed") || strings.Contains(err.Error(), "Execution context was destroyed")
}

func (t *Tab) promised(promise string) (string, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](promise, chromedp.EvalAwaitPromise))
}

// Text returns the visible text of each match. It awaits the second frame: innerText is "" before the first frame of an
// element with content-visibility.
func (t *Tab) Text(selector string) []string {
	t.tb.Helper()
	var texts []string
	t.Eval(fmt.Sprintf(`(async () => {
		for (const frame of [1, 2]) await new Promise(requestAnimationFrame);
		return [...document.querySelectorAll(%q)].map((e) => e.innerText.trim());
	})()`, selector), &texts)
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
	added, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: statements})
	if err != nil {
		t.tb.Fatalf("before a page: %v", err)
	}
	t.scripts = append(t.scripts, added.Identifier)
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
