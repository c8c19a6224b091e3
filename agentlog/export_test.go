package agentlog

// Names are those of lines, of which so many are remembered at most.
func Names(most int, lines ...string) []string {
	ids := newIdentity(most)
	names := []string{}
	for _, line := range lines {
		names = append(names, ids.of("session", []byte(line)))
	}
	return names
}
