package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefix begins the names of MCP tools in [event.SetTools]: mcp:SERVER/TOOL.
const Prefix = "mcp:"

const sentPrefix = "mcp__" // in requests to models

const (
	maxSentName = 64
	maxToolName = 128
)

func canonicalName(server, tool string) string { return Prefix + server + "/" + tool }

// sentName returns the name of a tool in requests to models: mcp__SERVER__TOOL. Tools of
// different servers have different names, because a server's name contains no "__" and does not end with
// "_". A tool name that does not fit ends with a hash.
func sentName(server, tool string) string {
	fitted := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, tool)
	name := sentPrefix + server + "__" + fitted
	if fitted == tool && len(name) <= maxSentName {
		return name
	}
	sum := sha256.Sum256([]byte(canonicalName(server, tool)))
	hash := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxSentName-len(hash))] + hash
}

// serverOf returns "" for a tool that is not of an MCP server.
func serverOf(sent string) string {
	rest, ok := strings.CutPrefix(sent, sentPrefix)
	server, _, found := strings.Cut(rest, "__")
	if !ok || !found {
		return ""
	}
	return server
}

// fittedName returns the name of a tool for [event.SetTools]: _ replaces * and control characters, and the name
// is cut to maxToolName.
func fittedName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '*' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.TrimSpace(name))
	for len(name) > maxToolName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}
