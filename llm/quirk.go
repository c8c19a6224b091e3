package llm

import (
	"maps"
	"slices"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// The kinds of [event.Usage.Quirks] in answers: what was repaired, skipped or worked around.
const (
	quirkNotJSON       = "event_not_json"          // an event that is not JSON was skipped
	quirkNotStreamed   = "answer_not_streamed"     // the answer is plain JSON instead of an event stream
	quirkMessage       = "message_for_delta"       // a choice has a message instead of a delta
	quirkChoices       = "other_choices"           // choices besides the first one were ignored
	quirkTextType      = "text_not_string"         // a text is a number, a boolean or an object
	quirkSplit         = "character_split"         // a character was joined of two chunks
	quirkNotUTF8       = "text_not_utf8"           // bytes that are not UTF-8 were replaced
	quirkThinkEnd      = "think_end_only"          // text before </think> without <think> became reasoning
	quirkFinish        = "finish_reason_unknown"   // the finish reason is not in [endings]
	quirkNoFinish      = "finish_reason_missing"   // [DONE] ended an answer without a finish reason
	quirkNoUsage       = "usage_missing"           // the usage of a complete answer is estimated
	quirkArguments     = "arguments_not_string"    // the arguments of a call are an object
	quirkEncodedTwice  = "arguments_encoded_twice" // the arguments of a call are a string with an object
	quirkMoreArguments = "arguments_repeated"      // the object of a call follows {} or itself
	quirkRepeatedCall  = "call_repeated"           // a call was sent twice
	quirkCallID        = "call_id_replaced"        // the id of a call is missing, too long or not unique
	quirkUnasked       = "call_unasked"            // calls were ignored, since no tools were offered
)

// The kinds of [event.Usage.Quirks] in requests.
const (
	quirkDropped = "parameter_dropped"      // the server refuses a parameter, which was not sent
	quirkRenamed = "parameter_renamed"      // the output limit has the other name
	quirkLowered = "output_limit_lowered"   // the model allows fewer tokens than the limit of a budget
	quirkKeyword = "schema_keyword_dropped" // the server refuses a keyword of the schemas of tools
	quirkAdapted = "messages_adapted"       // the chat template of the model refuses a role or an order of roles
	quirkRefused = "content_refused"        // content that the server refuses was replaced
)

// quirkSet collects kinds of [event.Usage.Quirks].
type quirkSet map[string]bool

func (s *quirkSet) add(kind string) {
	if *s == nil {
		*s = quirkSet{}
	}
	(*s)[kind] = true
}

// list returns the kinds, sorted; nil for none.
func (s quirkSet) list() []string { return event.DistinctQuirks(slices.Collect(maps.Keys(s))) }
