package main

import "go.uber.org/zap"

// Main runs the worker in a copy of the test binary.
var Main = main

// ReadyLine formats the ready line.
func ReadyLine(facts map[string]string, order ...string) string {
	var fields []zap.Field
	for _, key := range order {
		fields = append(fields, zap.String(key, facts[key]))
	}
	return readyLine(fields)
}

// AttachmentReader exports attachmentReader.
var AttachmentReader = attachmentReader

// CheckApprovals exports checkApprovals.
var CheckApprovals = checkApprovals

// CheckMCP exports checkMCP.
var CheckMCP = checkMCP
