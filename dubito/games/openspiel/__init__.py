"""Games of OpenSpiel: what its engine plays, the harness plays; here is only what lies between the two."""
