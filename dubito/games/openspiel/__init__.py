"""OpenSpiel's games at our table: its engine has the rules, and is an extra that nothing else needs."""
