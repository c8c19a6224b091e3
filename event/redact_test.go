package event_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-9ed7edd4/chronicle/event"
)

func TestRedactRemovesSecrets(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"plain text", "Hello, what is the weather?", "Hello, what is the weather?"},
		{"a reference to a key", `{"apiKeyRef":"env:OPENAI_API_KEY"}`, `{"apiKeyRef":"env:OPENAI_API_KEY"}`},
		{"a word with a key's prefix inside", "task-management-system and disk-usage-report", "task-management-system and disk-usage-report"},
		{"a field of JSON", `{"apiKey":"abc","x":1}`, `{"apiKey":[removed],"x":1}`},
		{"a field that is an object", `{"x":1,"apiKey":{"a":{},"value":"abc"},"y":"abc"}`, `{"x":1,"apiKey":[removed]`},
		{"a field that is an array", `{"apiKeys":["abc","def"]}`, `{"apiKeys":[removed]`},
		{"a field with a quote in its value", `{"password":"a\"b","x":1}`, `{"password":[removed],"x":1}`},
		{"a field of JSON in JSON", `{"content":"{\"api_key\":\"abc\"}"}`, `{"content":"{\"api_key\":[removed]}`},
		{"a variable", "export OPENAI_API_KEY=abc; run", "export OPENAI_API_KEY=[removed]; run"},
		{"a secret access key", "aws_secret_access_key = abc/def", "aws_secret_access_key = [removed]"},
		{"a header", "Authorization: Bearer abc", "Authorization: [removed]"},
		{"a header with another scheme", "Authorization: Token abc", "Authorization: [removed]"},
		{"a bearer token alone", "with Bearer abcdefgh1 it works", "with Bearer [removed] it works"},
		{"a basic token alone", "with Basic dXNlcjpwYXNz it works", "with Basic [removed] it works"},
		{"a secret after a path", "kv/password: hunter2, kv/secret=abcdef", "kv/password: [removed], kv/secret=[removed]"},
		{"a quoted name", "{ \"password\": swordfish }\n\"secret\": swordfish", "{ \"password\": [removed] }\n\"secret\": [removed]"},
		{"a masked key", "Incorrect API key provided: sk-proj-****abcd", "Incorrect API key provided: [removed]"},
		{"a sentence about a key", "UserMessageEvent.apiKey: a raw key is not allowed", "UserMessageEvent.apiKey: a raw key is not allowed"},
		{"a word after bearer", "the bearer of news", "the bearer of news"},
		{"a password in a URL", "see https://me:abc@example.com/x", "see https://[removed]@example.com/x"},
		{"a password with an @", "see https://me:a@c@example.com/x", "see https://[removed]@example.com/x"},
		{"a key by its shape", "it is sk-abcdefgh12345, keep it", "it is [removed], keep it"},
		{"a key on a line of its own in JSON", `{"content":"key:\nsk-abcdefgh12345"}`, `{"content":"key:\n[removed]"}`},
		{"a key behind an escape", `{"content":"\u003csk-abcdefgh12345>"}`, `{"content":"\u003c[removed]>"}`},
		{"a JSON web token", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "[removed]"},
		{"a private key", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- end", "[removed] end"},
		{"bytes", "\xff\xfe", "(2 bytes of invalid UTF-8)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, redact := range redactions {
				require.Equal(t, tc.want, redact(tc.in, 0))
				require.Equal(t, tc.want, redact(tc.want, 0), "not idempotent")
			}
		})
	}
	require.Equal(t, "with Bearer [removed] it works", event.Redact("with Bearer abcdefgh it works", 0), "recorded by workflows")
}

var redactions = []func(string, int) string{event.Redact, event.RedactOutput}

func TestRedactOutputKeepsWords(t *testing.T) {
	for _, text := range []string{
		"Basic JavaScript, basic authentication and bearer authentication",
		"open /run/secrets/api_key: no such file or directory",
		`open "conf/password": permission denied`,
		`path "password": no such file or directory`,
		"open docs/sk-learn-tutorial.md, hf_transfer_utils, pk_customer_id",
	} {
		require.Equal(t, text, event.RedactOutput(text, 0))
		data, err := json.Marshal(text)
		require.NoError(t, err)
		kept, err := event.RedactJSON(data)
		require.NoError(t, err)
		require.Equal(t, string(data), string(kept))
	}
}

func TestRedactTruncatesLongText(t *testing.T) {
	require.Equal(t, "äää", event.Redact("äää", 6))
	require.Equal(t, "ää… (8 bytes in total)", event.Redact("ääää", 5), "not between characters")
	require.Equal(t, "aaa… (1000000 bytes in total)", event.Redact(strings.Repeat("a", 1_000_000), 3))
	long := strings.Repeat("a ", 100) + "sk-abcdefgh12345"
	require.Equal(t, long[:200]+"[removed]", event.Redact(long, 0), "zero should mean no limit")
}

// secrets generates keys in the formats of well-known providers.
var secrets = rapid.OneOf(
	rapid.StringMatching(`sk-(proj-|ant-api03-)?[A-Za-z0-9]{20,40}`),
	rapid.StringMatching(`(gsk_|hf_|r8_|ghp_|xai-|pplx-|github_pat_|glpat-|xoxb-)[A-Za-z0-9]{20,40}`),
	rapid.StringMatching(`AIza[A-Za-z0-9_-]{35}`),
	rapid.StringMatching(`AKIA[A-Z0-9]{16}`),
	rapid.StringMatching(`chr_[a-z2-7]{8}_[A-Z2-7]{52}`),
	rapid.StringMatching(`eyJ[A-Za-z0-9_-]{10,20}\.[A-Za-z0-9_-]{10,20}\.[A-Za-z0-9_-]{10,20}`),
)

func TestRedactRemovesKeysAnywhereInAText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := secrets.Draw(t, "secret")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		around := rapid.SampledFrom([]string{" ", "\n", "\t", `"`, "'", "<", "=", ": ", "(", "\\", "/", "_"}).Draw(t, "around")
		text := before + around + secret + around + after
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			// Rejected input is JSON within JSON.
			data, err := json.Marshal(map[string]string{"content": text})
			require.NoError(t, err)
			text = string(data)
		}
		limit := rapid.IntRange(0, 2000).Draw(t, "limit")
		for _, redact := range redactions {
			got := redact(text, limit)
			require.NotContains(t, got, secret[8:])
			require.True(t, utf8.ValidString(got))
		}
	})
}

func TestRedactRemovesNamedSecretsAnywhereInAText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9]{12,40}`).Draw(t, "secret")
		name := rapid.SampledFrom([]string{
			"apiKey", "api_key", "api.key", "x-api-key", "OPENAI_API_KEY", "password", "client_secret", "Authorization",
			"access_token", "refreshToken", "private_key",
		}).Draw(t, "name")
		format := rapid.SampledFrom([]string{`"NAME":"VALUE"`, `{"NAME" : "VALUE"}`, `NAME=VALUE`, `NAME: VALUE`, `NAME = 'VALUE'`, `\"NAME\":\"VALUE\"`, `NAME: Bearer VALUE`,
			`{"NAME":["VALUE"]}`, `{"NAME":{"a":{"b":1},"c":"VALUE"}}`}).Draw(t, "format")
		text := strings.NewReplacer("NAME", name, "VALUE", secret).Replace(format)
		before := rapid.StringMatching(`[a-z ,]{0,20}`).Draw(t, "before")
		for _, redact := range redactions {
			require.NotContains(t, redact(before+" "+text, 0), secret)
		}
	})
}

func TestRedactEventsKeepsTheFormOfTheInput(t *testing.T) {
	one := event.New(event.UserMessage{Content: "my key is\nsk-abcdefgh12345"})
	require.Equal(t, `{"_tag":"UserMessageEvent","content":"my key is\n[removed]"}`, event.RedactEvents([]event.Event{one}))
	require.Equal(t, `[{"_tag":"SystemPromptEvent","content":""},{"_tag":"SystemPromptEvent","content":"x"}]`,
		event.RedactEvents([]event.Event{event.New(event.SystemPrompt{}), event.New(event.SystemPrompt{Content: "x"})}))
	require.Equal(t, "(1 events)", event.RedactEvents([]event.Event{{}}), "an event that cannot be encoded")
	long := event.New(event.UserMessage{Content: strings.Repeat("x", 10_000)})
	require.Less(t, len(event.RedactEvents([]event.Event{long})), event.MaxRejectedInput+50)
}

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"", "hello", `{"apiKey":"abc"}`, "Bearer abcdefgh", "https://a:b@c", "\xff", "sk-abcdefgh12345", "ä"} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(limit, 1<<20)
		got := event.Redact(text, limit)
		require.True(t, utf8.ValidString(got))
		if limit > 0 {
			require.LessOrEqual(t, len(got), limit+60)
		}
		const key = "sk-planted0123456789"
		require.NotContains(t, event.Redact(text+" "+key+" "+text, limit), key[3:])
	})
}

func TestRedactJSONReturnsAValueThatAnEventCanHold(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"no secret", `{"b": [1.50, null, "x"], "a": true}`, `{"a":true,"b":[1.50,null,"x"]}`},
		{"a field that is named like a key", `{"a":{"X-API-Key":"abc"}}`, `{"a":{"X-API-Key [removed]":null}}`},
		{"a field that is an object", `[{"apiKeys":{"a":"abc"},"b":1}]`, `[{"apiKeys [removed]":null,"b":1}]`},
		{"a key by its shape", `{"output":"it is sk-abcdefgh12345."}`, `{"output":"it is [removed]."}`},
		{"a settings file", `"A=1\nexport SOME_TOKEN=abcdef\nDB_PASSWORD='abcdef'"`, `"A=1\nexport SOME_TOKEN=[removed]\nDB_PASSWORD='[removed]'"`},
		{"a variable set to another", `"MY_TOKEN=$OTHER_TOKEN"`, `"MY_TOKEN=$OTHER_TOKEN"`},
		{"assigned passwords", `"curl -d 'user=ann&password=hunter2&x=1'; db_password=\"Tr0ub4dor-3\" api_key=abc1234\nclient_secret=a1B2/c3D4e5="`,
			`"curl -d 'user=ann&password=[removed]&x=1'; db_password=\"[removed]\" api_key=[removed]\nclient_secret=[removed]"`},
		{"assignments without a secret", `"password=required password=userPassword password=$DB_PASSWORD1 password=os.environ['PW1'] secret=base64 f(password=pass1234, x) password=/run/secrets/db1 next_page_token=abc1234"`,
			`"password=required password=userPassword password=$DB_PASSWORD1 password=os.environ['PW1'] secret=base64 f(password=pass1234, x) password=/run/secrets/db1 next_page_token=abc1234"`},
		{"source code", `"type User struct {\n\tpassword: string, authorization: { scheme }"`, `"type User struct {\n\tpassword: string, authorization: { scheme }"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, in := range []string{tc.in, tc.want} {
				got, err := event.RedactJSON([]byte(in))
				require.NoError(t, err)
				require.Equal(t, tc.want, string(got))
				require.NoError(t, event.RejectKeys(map[string]json.RawMessage{"value": got}))
			}
		})
	}
	for _, in := range []string{``, `{`, `{} {}`, `{"apiKey":"abc"`} {
		_, err := event.RedactJSON([]byte(in))
		require.ErrorContains(t, err, "want JSON, got ", in)
		require.NotContains(t, err.Error(), "abc")
	}
}
