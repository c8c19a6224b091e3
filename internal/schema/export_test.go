package schema

// Limit sets the limit of a validation.
func (s *Schema) Limit(evaluations int) { s.limit = evaluations }
