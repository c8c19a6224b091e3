package agent

// LineIDs returns the ids of lines when at most most of them are remembered.
func LineIDs(most int, lines ...string) []string {
	ids := newIdentity(most)
	names := []string{}
	for _, line := range lines {
		names = append(names, ids.of("session", []byte(line)))
	}
	return names
}
