package event

// Members is members for tests.
var Members = members
