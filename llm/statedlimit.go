package llm

import (
	"regexp"
	"strconv"
	"strings"
)

// statedLimit has the numbers of tokens in the rejection of a request that is too long. 0: not stated.
type statedLimit struct {
	window int // maximum input: the context window minus the requested output
	input  int // of the request
}

// limitTexts match the numbers in rejections. The test cites the sources of the texts. <window> is the
// context window, which includes <output>, the requested output. <input> is the input without
// <functions>, unless the text states only one number for both. <total> is the sum of input and output. The
// first match of each name counts.
var limitTexts = compileLimitTexts(
	`maximum (?:context|prompt) length is <window>`,
	`context length (?:is|of) only <window>`,
	`<input> in (?:the messages|your prompt)`,
	`<functions> in the functions`,
	`<output> (?:in|for) the (?:completion|output)`,
	`<input> of text input`,
	`<functions> of tool input`,
	`requested <output> output tokens`,
	`max_(?:completion_)?tokens' is too large: <output>`,
	`(?:has|contains|passed|resulted in)(?: at least)? <input>(?: input)? tokens`,
	`requested (?:about )?<total> tokens`,
	`prompt is too long: <input> tokens > <window> maximum`,
	`exceed context limit: <input> \+ <output> > <window>`,
	`input token count (?:\(<input>\)\s+)?exceeds the maximum number of tokens allowed \(?<window>`,
	`too large for model with <window> maximum context length`,
	`configured limit of <window> tokens`,
	`request \(<input> tokens\) exceeds the available context size \(<window> tokens\)`,
	`n_prompt_tokens\W+<input>\b`,
	`n_ctx\W+<window>\b`,
	`token count of <input> exceeds the limit of <window>`,
	`input length \(?<input>(?: tokens\))? exceeds the maximum allowed (?:input )?length (?:of )?\(?<window>`,
	`input \(<input> tokens\) is longer than the model's context length \(<window>`,
	`max_new_tokens. must be <= <window>\. given: <input> .inputs. tokens and <output>`,
	`model token limit: <window> \(requested: <input>\)`,
	`current length is <input> while limit is <window>`,
	`keep the first <input> tokens`,
	`tokens per minute \(TPM\): limit <window>, requested <input>`,
)

func compileLimitTexts(texts ...string) (compiled []*regexp.Regexp) {
	name := regexp.MustCompile(`<(window|input|functions|output|total)>`)
	for _, text := range texts {
		compiled = append(compiled, regexp.MustCompile(`(?i)`+name.ReplaceAllString(text, `(?P<$1>\d[\d,]*)`)))
	}
	return compiled
}

// limitIn returns the numbers in the response to a request that is too long.
func limitIn(response string) statedLimit {
	numbers := map[string]int{}
	for _, text := range limitTexts {
		match := text.FindStringSubmatch(response)
		for i, name := range text.SubexpNames() {
			if i > 0 && i < len(match) && numbers[name] == 0 {
				numbers[name] = tokensIn(match[i])
			}
		}
	}
	limit := statedLimit{window: numbers["window"], input: numbers["input"]}
	if limit.input == 0 {
		limit.input = max(0, numbers["total"]-numbers["output"])
	} else {
		limit.input += numbers["functions"]
	}
	if numbers["output"] < limit.window {
		limit.window -= numbers["output"]
	}
	return limit
}

// tokensIn returns 0 for an implausible number.
func tokensIn(digits string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(digits, ",", ""))
	if err != nil || n > maxContextWindow {
		return 0
	}
	return n
}
