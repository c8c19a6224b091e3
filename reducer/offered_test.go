package reducer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-9ed7edd4/chronicle/event"
	"github.com/seed-9ed7edd4/chronicle/reducer"
)

func TestTheStepsOfATurnOfferTheSameTools(t *testing.T) {
	config := func(patterns ...string) *event.SetTools {
		set := event.SetTools{Tools: event.ToolList{{Name: "ask"}}}
		for _, pattern := range patterns {
			set.Tools = append(set.Tools, event.Tool{Pattern: pattern})
		}
		return &set
	}
	offered := &reducer.Offered{EventID: "demo:0004", Patterns: []string{"fetch", "mcp:files/*"}}
	for name, test := range map[string]struct {
		request *reducer.Request
		offered *reducer.Offered
		config  *event.SetTools
		want    string
	}{
		"no request":               {nil, offered, config("fetch", "mcp:files/*"), ""},
		"the first step":           {&reducer.Request{}, offered, config("fetch", "mcp:files/*"), ""},
		"the second step":          {&reducer.Request{Steps: 1}, offered, config("fetch", "mcp:files/*"), "demo:0004"},
		"no tools were offered":    {&reducer.Request{Steps: 1}, nil, config("fetch"), ""},
		"the context names others": {&reducer.Request{Steps: 1}, offered, config("fetch"), ""},
		"the context names none":   {&reducer.Request{Steps: 1}, offered, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			session := reducer.NewSession("demo")
			session.Request, session.Offered, session.Reduced.Config.Tools = test.request, test.offered, test.config
			require.Equal(t, test.want, reducer.MustOffer(session))
		})
	}
}
