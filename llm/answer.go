package llm

import "strings"

// assembly joins the chunks of an answer.
type assembly struct {
	meter   *meter
	onDelta func(Delta)
	state   *stateReader
	quirks  quirkSet

	text, reasoning textReader
	calls           callReader
	extras          []value  // extra_content of each call of a complete answer
	callIDs         []string // of the calls, as the server sent them
	callsFrom       source
	tags            *thinkTags // nil: not used
	hasDelta        bool       // a delta had a part of the answer
	isNamed         bool       // the reasoning arrives in a field of its own, and details repeat it
	isRefusal       bool       // by the model
	finishes        []finish
}

// source is the choice that a part of the answer is taken from: the first one that has such a part. GitHub Copilot
// sends the text and the calls of one answer in two choices.
type source struct {
	index int
	isSet bool
}

func (s *source) takes(index int) bool {
	if !s.isSet {
		s.index, s.isSet = index, true
	}
	return s.index == index
}

type textReader struct {
	source
	joiner
	scrubber
}

// add returns the text that a piece completes, without the key.
func (r *textReader) add(piece string, quirks *quirkSet) string {
	return r.scrubber.add(r.joiner.add(piece, quirks))
}

func (r *textReader) rest(quirks *quirkSet) string {
	return r.scrubber.add(r.joiner.rest(quirks)) + r.scrubber.rest()
}

func (a *assembly) add(c *choice) {
	for kind := range c.quirks {
		a.quirks.add(kind)
	}
	a.addFinish(finish{c.Index, string(c.FinishReason), c.native})
	if c.isMessage {
		a.quirks.add(quirkMessage)
		if a.hasDelta {
			a.reduce(c)
		}
	} else if !c.isEmpty() {
		a.hasDelta = true
	}
	a.state.read(c)
	if thought := a.thought(c); thought != "" {
		a.take(&a.reasoning, c.Index, thought, func(text string) { a.yield(Delta{text, true}) })
	}
	if c.Delta.Refusal != "" {
		a.isRefusal = true
	}
	if text := c.Delta.Content + c.Delta.Refusal; text != "" {
		a.take(&a.text, c.Index, text, a.yieldText)
	}
	if len(c.Delta.ToolCalls) > 0 || c.Delta.FunctionCall != nil {
		if a.callsFrom.takes(c.Index) {
			a.calls.read(c, a.meter.writeCall)
		} else {
			a.quirks.add(quirkChoices)
		}
	}
}

// reduce removes from a message what deltas have said: MiniMax ends a stream with the whole message.
func (a *assembly) reduce(c *choice) {
	said, thought := a.meter.texts()
	c.Delta.Content = missingFrom(said, c.Delta.Content)
	c.Delta.ReasoningContent = missingFrom(thought, c.Delta.ReasoningContent)
	c.Delta.Refusal, c.thoughts, c.parts, c.details = missingFrom(said, c.Delta.Refusal), "", nil, nil
	if len(a.calls.calls) > 0 {
		c.Delta.ToolCalls, c.callExtra, c.Delta.FunctionCall = nil, nil, nil
	}
}

// missingFrom returns the end of whole after what was said; "" if whole begins otherwise.
func missingFrom(said, whole string) string {
	rest, ok := strings.CutPrefix(whole, said)
	if !ok {
		return ""
	}
	return rest
}

func (a *assembly) thought(c *choice) string {
	if c.Delta.ReasoningContent != "" {
		a.isNamed = true
	}
	if a.isNamed {
		return c.Delta.ReasoningContent
	}
	return c.thoughts
}

func (a *assembly) take(r *textReader, index int, piece string, yield func(string)) {
	if !r.takes(index) {
		a.quirks.add(quirkChoices)
		return
	}
	if text := r.add(piece, &a.quirks); text != "" {
		yield(text)
	}
}

func (a *assembly) yieldText(text string) {
	if a.tags == nil {
		a.yield(Delta{Text: text})
		return
	}
	a.tags.split(text, a.yield, func() {
		a.quirks.add(quirkThinkEnd)
		a.meter.relabel()
	})
}

func (a *assembly) yield(delta Delta) {
	a.meter.write(delta)
	if a.onDelta != nil {
		a.onDelta(delta)
	}
}

// end yields what was held back for a next piece.
func (a *assembly) end() {
	if rest := a.reasoning.rest(&a.quirks); rest != "" {
		a.yield(Delta{rest, true})
	}
	if rest := a.text.rest(&a.quirks); rest != "" {
		a.yieldText(rest)
	}
	if a.tags != nil {
		a.tags.flush(a.yield)
	}
}

const maxChoices = 16 // whose finish reasons are kept

func (a *assembly) addFinish(f finish) {
	if f.reason == "" {
		return
	}
	for i := range a.finishes {
		if a.finishes[i].index == f.index {
			a.finishes[i] = f
			return
		}
	}
	if len(a.finishes) < maxChoices {
		a.finishes = append(a.finishes, f)
	}
}

// finish returns the finish reason of the choice with the calls, or else with the text, or else of the first choice.
func (a *assembly) finish() (f finish) {
	for _, s := range []source{a.callsFrom, a.text.source, a.reasoning.source} {
		for _, f := range a.finishes {
			if s.isSet && s.index == f.index {
				return f
			}
		}
	}
	if len(a.finishes) > 0 {
		return a.finishes[0]
	}
	return finish{}
}
