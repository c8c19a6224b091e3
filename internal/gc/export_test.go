package gc

// PercentOf exposes percentOf.
var PercentOf = percentOf
