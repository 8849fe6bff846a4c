"""One module for each family of models; the checker loads the one that a certificate names."""
