package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer is what the tests read of a response.
type answer struct {
	ID           string
	Conversation struct{ ID string }
	Output       []struct {
		ID      string
		Content []struct{ Text string }
	}
}

func (a answer) last() string { return a.Output[len(a.Output)-1].ID }

func respond(t *testing.T, url, format string, args ...any) (of answer) {
	t.Helper()
	status, text := post(t, "", url+"/v1/responses", fmt.Sprintf(format, args...))
	require.Equal(t, http.StatusOK, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &of))
	return of
}

func TestReferencesStandForTheItemsOfEarlierAnswers(t *testing.T) {
	url, _ := serve(t)
	refused := func(status int, id, format string, args ...any) {
		t.Helper()
		got, text := post(t, "", url+"/v1/responses", fmt.Sprintf(format, args...))
		require.Equal(t, status, got, text)
		require.Contains(t, text, id)
		require.Contains(t, text, `"param":"input[0].id"`)
	}
	first := respond(t, url, `{"input":"One"}`)
	item := first.last()

	alone := respond(t, url, `{"input":[{"role":"user","content":"One"},{"type":"item_reference","id":%q},{"role":"user","content":"Two"}]}`, item)
	require.NotEqual(t, first.Conversation, alone.Conversation)
	require.Contains(t, alone.Output[0].Content[0].Text, `2nd message: "Two"`)
	_, text := get(t, url+"/v1/responses/"+alone.ID+"/input_items?order=asc")
	require.Contains(t, text, `This is your 1st message: \"One\".`, "the history has the text")

	continued := `{"previous_response_id":%q,"input":[{"id":%q},{"role":"user","content":"Two"}]}`
	next := respond(t, url, continued, first.ID, item)
	require.Equal(t, first.Conversation, next.Conversation)
	require.Contains(t, next.Output[0].Content[0].Text, `2nd message: "Two"`)
	fork := respond(t, url, continued, first.ID, item)
	require.NotEqual(t, first.Conversation, fork.Conversation)
	require.Contains(t, fork.Output[0].Content[0].Text, `2nd message: "Two"`)

	refused(http.StatusBadRequest, next.last(), continued, fork.ID, next.last())
	refused(http.StatusBadRequest, item, `{"conversation":"demo","input":[{"type":"item_reference","id":%q},{"role":"user","content":"Two"}]}`, item)
	refused(http.StatusNotFound, "rs_demo_0099", `{"input":[{"type":"item_reference","id":"rs_demo_0099"},{"role":"user","content":"Two"}]}`)

	looked := respond(t, url, `{"input":"/call lookup {\"word\":\"door\"}","tools":[{"type":"mcp","server_label":"worker","require_approval":"never"}]}`)
	told := respond(t, url, `{"input":[{"role":"user","content":"Look"},{"type":"item_reference","id":%q},{"type":"item_reference","id":%q},{"role":"user","content":"Thanks"}]}`,
		looked.Output[0].ID, looked.last())
	_, text = get(t, url+"/v1/responses/"+told.ID+"/input_items?order=asc")
	require.Contains(t, text, `"output":"the meaning of door"`)
}

func TestItemsAreNotDeleted(t *testing.T) {
	url, _ := serve(t)
	first := respond(t, url, `{"conversation":"demo","input":"One"}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url+"/v1/conversations/demo/items/"+first.last(), nil)
	require.NoError(t, err)
	status, text := do(t, r)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "append-only")
	require.Contains(t, text, `"code":"unsupported_parameter"`)
	status, text = get(t, url+"/v1/conversations/demo/items/"+first.last())
	require.Equal(t, http.StatusOK, status, text)
}
