package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/internal/terminal"
)

// The steps import single scripts of the page.
func TestScripts(t *testing.T) {
	tab := show(t, newLog(event.UserMessage{Content: "Hi"}))
	tab.Run("server-sent events parse at any chunk boundary", func(t *testing.T) {
		const stream = ": keep-alive\n\nid: e.1\nevent: document\ndata: {\"a\":1}\n\nretry: 1500\n\r\nid: e.2\r\ndata:one\r\ndata: two\r\n\r\nevent: lost\ndata: unfinished"
		var wrong []string
		tab.Eval(fmt.Sprintf(`(async () => {
			const { parser } = await import("./sse.js");
			const stream = %s;
			const want = JSON.stringify([
				{ id: "e.1", type: "document", data: '{"a":1}' },
				{ type: "retry", data: "1500" },
				{ id: "e.2", type: "message", data: "one\ntwo" },
			]);
			const wrong = [];
			for (let a = 0; a <= stream.length; a++) {
				for (let b = a; b <= stream.length; b += 7) {
					const parse = parser();
					const got = JSON.stringify([stream.slice(0, a), stream.slice(a, b), stream.slice(b)].flatMap(parse));
					if (got !== want) wrong.push(a + ", " + b + ": " + got);
				}
			}
			return wrong;
		})()`, toJSON(stream)), &wrong)
		require.Empty(t, wrong)
	})
	tab.Run("a silent stream is aborted", func(t *testing.T) {
		var end []string
		tab.Eval(`(async () => {
			const { events } = await import("./sse.js");
			const seen = [];
			try {
				for await (const { type } of events("contexts/demo/transcript", { silence: 500 })) seen.push(type);
			} catch (error) {
				seen.push(error.message);
			}
			return seen;
		})()`, &end)
		require.Equal(t, []string{"open", "document", "status", "no data for 0.5 s"}, end)
	})
	tab.Run("streamed Markdown equals complete Markdown", func(t *testing.T) {
		const text = "# Title\n\nA *word* and `code`,\nand more.\n\n- one\n- two\n  - deeper\n\n1. first\n2. second\n\n" +
			"```go\nfunc main() {\n\n\tprintln(`a`)\n}\n```\n\n> quoted\n> text\n\n~~~\n```\nnot the end\n~~~\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end <b>is</b> here"
		for size := 1; size <= 9; size++ {
			var grown, whole string
			tab.Eval(fmt.Sprintf(`(async () => {
				const { StreamingMarkdown } = await import("./markdown.js");
				const element = document.createElement("div");
				const streaming = new StreamingMarkdown(element);
				const text = %s;
				for (let i = 0; i < text.length; i += %d) {
					streaming.append(text.slice(i, i + %[2]d));
					streaming.show();
				}
				return element.textContent.replace(/\s+/g, " ").trim();
			})()`, toJSON(text), size), &grown)
			tab.Eval(fmt.Sprintf(`(async () => {
				const { render } = await import("./markdown.js");
				return render(%s).textContent.replace(/\s+/g, " ").trim();
			})()`, toJSON(text)), &whole)
			require.Contains(t, whole, "func main() { println(`a`) }")
			require.Equal(t, whole, grown, "in pieces of %d", size)
		}
	})
	tab.Run("Markdown that is nested too deeply is text", func(t *testing.T) {
		for _, nested := range []string{">", "> ", "- ", "1. ", "> - ", "*a ", "~~a "} {
			var shown struct {
				Text  string
				Depth int
			}
			tab.Eval(fmt.Sprintf(`import("./markdown.js").then(({ render }) => {
				const fragment = render(%s);
				let Depth = 0;
				for (let e = [...fragment.querySelectorAll("*")].at(-1); e; e = e.parentElement) Depth++;
				return { Text: fragment.textContent, Depth };
			})`, toJSON(strings.Repeat(nested, 3000)+"the end")), &shown)
			require.Contains(t, shown.Text, "the end", nested)
			require.Less(t, shown.Depth, 100, nested)
		}
	})
	tab.Run("the work for a token is constant", func(t *testing.T) {
		for name, token := range map[string]string{
			"paragraphs":    "(i) => (i % 40 ? `word${i} ` : `\\n\\n`)",
			"code":          "(i) => (i === 0 ? '```go\\n' : i % 8 ? `word${i} ` : `\\n`)",
			"a list":        "(i) => (i % 10 ? `word${i} ` : `\\n- `)",
			"a single line": "(i) => `word${i} `",
			"text and code": "(i) => (i % 60 === 0 ? '\\n```\\n' : i % 6 ? `word${i} ` : `\\n`)",
			"a mixed text":  "(i) => (i % 50 ? `*w* [l](https://example.com) ` : `\\n\\n> `)",
		} {
			var work []int
			tab.Eval(`(async () => {
					const { StreamingMarkdown } = await import("./markdown.js");
					const element = document.createElement("div");
					const streaming = new StreamingMarkdown(element);
					const observer = new MutationObserver(() => {});
					observer.observe(element, { childList: true, characterData: true, subtree: true });
					const work = [0, 0, 0, 0, 0, 0];
					const token = `+token+`;
					for (let i = 0; i < 1800; i++) {
						streaming.append(token(i));
						if (i % 4) continue; // a frame has several tokens
						streaming.show();
						for (const { addedNodes, target, type } of observer.takeRecords()) {
							work[Math.floor(i / 300)] += type === "characterData" ? target.data.length
								: [...addedNodes].reduce((sum, node) => sum + node.textContent.length, 0);
						}
					}
					return work;
				})()`, &work)
			require.NotZero(t, work[1])
			require.Less(t, work[5], 2*work[1], "characters shown for 300 tokens of %s, early and late: %v", name, work)
		}
	})
	tab.Run("entries of another day show the date", func(t *testing.T) {
		var earlier, today string
		const timeOf = `(async () => {
			const { build } = await import("./entry.js");
			return build({ content: { timestamp: %s, content: "", entry_type: { type: "error_message" } } }).element.querySelector("time").textContent;
		})()`
		tab.Eval(fmt.Sprintf(timeOf, `"2020-02-29T12:00:00Z"`), &earlier)
		tab.Eval(fmt.Sprintf(timeOf, `new Date().toISOString()`), &today)
		require.Contains(t, earlier, "29")
		require.Less(t, len(today), len(earlier))
	})
	tab.Run("an entry that cannot be shown is JSON", func(t *testing.T) {
		var text string
		tab.Eval(`import("./entry.js").then(({ build }) => build({ content: { content: 7, entry_type: { type: "system_message", subtype: "hook" } } }).element.textContent)`, &text)
		require.Contains(t, text, "This entry cannot be shown")
		require.Contains(t, text, `"subtype": "hook"`)
	})
	tab.Run("the page and the terminal show the same hidden characters", func(t *testing.T) {
		data, err := os.ReadFile("../internal/terminal/testdata/visible.json")
		require.NoError(t, err)
		var table []struct{ Text, Want string }
		require.NoError(t, json.Unmarshal(data, &table))
		var got []string
		tab.Eval(`import("./visible.js").then(({ visible }) => `+string(data)+`.map(({ text }) => visible(text)))`, &got)
		for i, test := range table {
			require.Equal(t, test.Want, got[i], "%q", test.Text)
		}
		var changes []rune // where a run of hidden characters begins or ends
		tab.Eval(`import("./visible.js").then(({ visible }) => {
			const changes = [];
			for (let i = 0, was = false; i < 0x110000; i++) {
				const c = String.fromCodePoint(i), is = visible(c) !== c;
				if (is !== was) changes.push(i);
				was = is;
			}
			return changes;
		})`, &changes)
		hidden := false
		for r := range rune(unicode.MaxRune + 1) {
			if len(changes) > 0 && changes[0] == r {
				hidden, changes = !hidden, changes[1:]
			}
			if !unicode.In(r, unicode.Cs, unicode.Cn) && hidden != (terminal.Value(string(r)) != string(r)) {
				t.Errorf("%U: hidden on the page: %t", r, hidden)
			}
		}
	})
	tab.Run("a malformed schema of a result is still a form", func(t *testing.T) {
		// A model writes the schema of the result, so any member can have any type.
		values := []string{`null`, `7`, `"x"`, `true`, `[]`, `[null]`, `{}`, `{"a":null}`}
		schemas := values
		for _, name := range []string{"properties", "required", "title", "description", "default", "minLength", "pattern"} {
			for _, value := range values {
				schemas = append(schemas,
					fmt.Sprintf(`{"type":"object",%q:%s}`, name, value),
					fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string"}},%q:%s}`, name, value),
					fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string",%q:%s},"b":%s}}`, name, value, value))
			}
		}
		for _, name := range []string{"type", "enum", "items"} {
			for _, value := range values {
				schemas = append(schemas, fmt.Sprintf(`{"type":"array",%q:%s}`, name, value), fmt.Sprintf(`{"type":"array","default":7,"items":{"type":"string",%q:%s}}`, name, value))
			}
		}
		var failed []string
		tab.Eval(fmt.Sprintf(`import("./entry.js").then(({ build }) => %s.filter((schema) => [{ arguments: '{"requestedSchema":' + schema + "}" }, { schema: JSON.parse(schema) }].some((question, i) => {
			const { element } = build({ content: { content: "", entry_type: { type: "tool_use", tool_name: "ask_user", tool_call_id: "malformed " + i + schema, status: "pending_client", action_type: { action: "other" }, question } } });
			return element.querySelector(".call-form [data-key='field0']")?.form.textContent.includes("[object") !== false;
		})))`, toJSON(schemas)), &failed)
		require.Empty(t, failed)
	})
	tab.Run("the policy blocks HTML strings and external requests", func(t *testing.T) {
		var refused []string
		tab.Eval(`(async () => {
			const refused = [];
			try { document.body.innerHTML = "<b>x</b>" } catch (error) { refused.push("innerHTML " + error.name) }
			const violated = new Promise((resolve) => addEventListener("securitypolicyviolation", (e) => e.blockedURI.includes("tracker") && resolve(e.effectiveDirective)));
			const image = new Image();
			image.src = "https://example.com/tracker.png";
			refused.push(await violated);
			return refused;
		})()`, &refused)
		require.Equal(t, []string{"innerHTML TypeError", "img-src"}, refused)
		require.NotEmpty(t, tab.Troubles())
	})
}
