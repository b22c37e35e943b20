"""Results of a cross-validation, as typed values and as the JSON of results.json."""
