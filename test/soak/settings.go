package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-9ed7edd4/chronicle/event/eventtest"
)

// set sends settings: valid ones of any kind, or some that make answers fail or last.
func set(ctx context.Context, u *user) error {
	if u.rand.IntN(3) == 0 {
		return u.postEvent(ctx, eventtest.SettingBody().Example(int(u.rand.Int32())))
	}
	key := u.newKey()
	fields := strings.NewReplacer("URL", u.ModelURL(), "WORDS", fmt.Sprintf("%x", u.rand.Uint64())).Replace(pick(u.rand, badSettings...))
	return u.post(ctx, fmt.Appendf(nil, `{"clientEventId":%q,%s}`, key, fields), nil, key)
}

var badSettings = []string{
	`"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"URL/sub"`,
	`"_tag":"SetProviderConfig","providerId":"openai","model":"m","baseUrl":"http://169.254.169.254/latest"`,
	`"_tag":"SetProviderConfig","providerId":"openai","model":"m","apiKeyRef":"env:PATH"`,
	`"_tag":"SetProviderConfig","providerId":"openai","model":"m","apiKeyRef":"file:/etc/passwd"`,
	`"_tag":"SetProviderConfig","providerId":"nobody","model":"WORDS"`,
	`"_tag":"SetProviderConfig","providerId":"openai","model":"hostile","asFallback":true`,
	`"_tag":"SetTimeout","timeoutMs":1`,
	`"_tag":"SetTimeout","timeoutMs":50,"firstTokenMs":1`,
	`"_tag":"SetTimeout","timeoutMs":86400000`,
	`"_tag":"SetRetryConfig","maxRetries":100,"initialDelayMs":1`,
	`"_tag":"SetRetryConfig","maxRetries":100,"initialDelayMs":3600000,"maxDelayMs":3600000`,
	`"_tag":"SetDeliveryPolicy","policy":"interrupt","quietPeriodMs":0,"maxWaitMs":0`,
	`"_tag":"SetDeliveryPolicy","policy":"queue","quietPeriodMs":60000`,
	`"_tag":"SetDeliveryPolicy","policy":"reject"`,
	`"_tag":"SetDeliveryPolicy","policy":"steer"`,
	`"_tag":"BudgetSet","tokens":0`,
	`"_tag":"BudgetSet","tokens":5000`,
	`"_tag":"BudgetSet","costMicros":1`,
	`"_tag":"SetCompaction","strategies":[]`,
	`"_tag":"SetCompaction","strategies":["summarise"],"triggerPercent":10,"targetPercent":1`,
	`"_tag":"SetDetails","title":"WORDS","labels":{"WORDS":"WORDS"},"archived":true`,
	`"_tag":"SetDetails","title":"","labels":{},"owner":"WORDS"`,
	`"_tag":"SetRequestSettings","responseFormat":{"type":"json_schema","schema":{"$ref":"#"}}`,
	`"_tag":"SetRequestSettings","responseFormat":{"type":"json_schema","schema":{"type":"string","pattern":"(a+)+$"}}`,
	`"_tag":"SetRequestSettings","responseFormat":{"type":"json_object"}`,
	`"_tag":"SetRequestSettings","maxTokens":1,"stop":["e"],"seed":4611686018427387904,"extra":{"x":[[[["WORDS"]]]],"temperature":"hot"}`,
	`"_tag":"SetRequestSettings","reasoning":"full","toolChoice":{"name":"gone"},"labels":{"team":"a","user":"WORDS"}`,
	`"_tag":"SetTools","tools":["*",{"name":"ask","description":"WORDS","parameters":{"type":"object"}}],"maxSteps":100,"maxRepeats":10,"parallel":16,"expiryMs":1000`,
	`"_tag":"SetTools","tools":[{"name":"ask"}],"approve":["*"],"maxSteps":1`,
	`"_tag":"SetTools","tools":[{"name":"ask","parameters":{"$ref":"#"}}],"approve":[{"tool":"ask","when":{"$ref":"#/nowhere"}}]`,
}
