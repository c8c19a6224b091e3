package agent

// LineIDs returns the ids of lines when at most max distinct lines are counted.
func LineIDs(max int, lines ...string) []string {
	ids := newIdentity(max)
	names := []string{}
	for _, line := range lines {
		names = append(names, ids.of("session", []byte(line)))
	}
	return names
}
