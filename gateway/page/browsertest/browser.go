// Package browsertest shows pages to headless Chromium, for tests.
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
// The tests of a package share one Chromium; each has storage, cookies and a cache
// of its own. [Start] skips the test if there is no Chromium, so it is called before
// anything that the end of the test checks. A test fails when a script of a page
// throws, or when the page breaks its Content-Security-Policy.
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
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience limits the wait for what a page is sure to do. It is generous, since it
// only catches a hang.
const patience = time.Minute

// process is the Chromium of this process. It ends with this process at the latest,
// since its debugging pipe is closed then.
var process struct {
	sync.Mutex
	ctx  context.Context // nil: not started
	stop func()
}

// Stop ends Chromium and removes its files. TestMain calls it after the tests.
func Stop() {
	process.Lock()
	defer process.Unlock()
	if process.ctx != nil {
		process.stop()
		process.ctx = nil
	}
}

// chromium returns the context of a Chromium that runs. One that died is replaced.
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
		chromedp.Flag("force-color-profile", "srgb"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
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

// Browser is a Chromium with storage, cookies and a cache of its own.
type Browser struct {
	tb  testing.TB
	ctx context.Context
	id  cdp.BrowserContextID
}

// Start returns a browser for the duration of the test. It skips the test if there
// is no Chromium.
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
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if _, err := chromedp.CallBrowser(ctx, target.DisposeBrowserContext,
			target.DisposeBrowserContextParams{BrowserContextID: created.BrowserContextID}); err != nil {
			tb.Errorf("dispose of a browser context: %v", err)
		}
	})
	return &Browser{tb, ctx, created.BrowserContextID}
}

// find returns the path of Chromium.
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

// Tab is a page that is shown.
type Tab struct {
	tb  testing.TB
	ctx context.Context

	mu       sync.Mutex
	troubles []string
}

// Open shows a page of 1200 by 800 pixels in a tab of its own.
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
	// Tabs in the background draw nothing, otherwise.
	call(t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	t.run(chromedp.EmulateViewport(1200, 800), chromedp.Navigate(url))
	return t
}

// listen keeps what the browser complains about. That a server is away is part of
// many tests.
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

// Troubles returns what the browser has complained about, and forgets it.
func (t *Tab) Troubles() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.troubles
	t.troubles = nil
	return out
}

func (t *Tab) run(steps ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
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

// Eval evaluates an expression of JavaScript, waits if it is a promise, and decodes
// its JSON into a value.
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

// Await waits until an expression is true. It is looked at in every frame.
func (t *Tab) Await(expression string) {
	t.tb.Helper()
	_, err := t.promised(`new Promise((resolve) => {
		const look = () => ((` + expression + `) ? resolve("") : requestAnimationFrame(look));
		look();
	})`)
	if err != nil {
		seen, _ := t.promised("Promise.resolve(document.body.innerText)")
		t.tb.Fatalf("the test waits in vain for %s: %v\nThe page says:\n%s", expression, err, seen)
	}
}

// promised is the string that a promise is fulfilled with.
func (t *Tab) promised(promise string) (string, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](promise, chromedp.EvalAwaitPromise))
}

// Text is what a person reads in the elements that a selector finds, one string for
// each.
func (t *Tab) Text(selector string) []string {
	t.tb.Helper()
	var texts []string
	t.Eval(fmt.Sprintf("[...document.querySelectorAll(%q)].map((e) => e.innerText.trim())", selector), &texts)
	return texts
}

// Type focuses the element that a selector finds, and presses keys; "\r" is Enter.
func (t *Tab) Type(selector, text string) {
	t.tb.Helper()
	t.run(chromedp.Focus(chromedp.CSS(selector)))
	t.Press(text)
}

// Press presses keys, one for each character, wherever the focus is; package kb
// names those without one.
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
			// A character in an event of its own would come although the page had
			// prevented it.
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []*input.DispatchKeyEventParams{down, up} {
			e.Modifiers |= int64(held)
			call(t, input.DispatchKeyEvent, *e)
		}
	}
}

// Click clicks the first element that a selector finds. Like Playwright, it waits until
// the element is visible, has kept its place for two frames, and is not covered.
func (t *Tab) Click(selector string) {
	t.tb.Helper()
	t.Await(fmt.Sprintf(clickable, selector))
	t.run(chromedp.Click(chromedp.CSS(selector)))
}

// clickable is an expression that is true when an element can be clicked. It keeps what
// it saw in the frame before in the element.
const clickable = `((element) => {
	if (!element) return false;
	element.scrollIntoView({ block: "nearest", behavior: "instant" });
	const { x, y, width, height } = element.getBoundingClientRect();
	const place = [x, y, width, height].join();
	element.framesInPlace = element.lastPlace === place ? element.framesInPlace + 1 : 0;
	element.lastPlace = place;
	return element.framesInPlace >= 2 && element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
})(document.querySelector(%q))`

// Before runs statements of JavaScript before each page that is loaded from now on
// runs its own.
func (t *Tab) Before(statements string) {
	t.tb.Helper()
	if _, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: statements}); err != nil {
		t.tb.Fatalf("before a page: %v", err)
	}
}

// Reload shows the page anew.
func (t *Tab) Reload() {
	t.tb.Helper()
	t.run(chromedp.Reload())
}

// Attach chooses files for the input that a selector finds.
func (t *Tab) Attach(selector string, paths ...string) {
	t.tb.Helper()
	t.run(chromedp.SetUploadFiles(chromedp.CSS(selector), paths, chromedp.NodeReady))
}

// Do runs statements of JavaScript, which may await promises.
func (t *Tab) Do(statements string) {
	t.tb.Helper()
	if _, err := t.promised("(async () => {" + statements + "; return \"\"})()"); err != nil {
		t.tb.Fatalf("%s: %v", statements, err)
	}
}

// Look is how a page is looked at.
type Look struct {
	Width, Height int64
	// Dark says that the system is dark.
	Dark bool
}

// As lets the page be looked at in another way.
func (t *Tab) As(l Look) {
	t.tb.Helper()
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	t.run(chromedp.EmulateViewport(l.Width, l.Height))
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // so that pictures are the same each time
		},
	})
}

// Screenshot writes what is seen to a PNG file.
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
