package main

import "go.uber.org/zap"

// Main runs the worker in a copy of the test binary.
var Main = main

// ReadyLine gives tests the line for people.
func ReadyLine(facts map[string]string, order ...string) string {
	var fields []zap.Field
	for _, key := range order {
		fields = append(fields, zap.String(key, facts[key]))
	}
	return readyLine(fields)
}

// AttachmentReader gives tests the reader of attachments.
var AttachmentReader = attachmentReader

// ParkingBudget gives tests the bound on cached sessions.
var ParkingBudget = parkingBudget
