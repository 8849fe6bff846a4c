"""What makes claims of a learner's evidence.

`evidence` has the types that a learner hands over (scores, votes, predictions, densities, distances, norms, problems),
`seal` issues a certificate, `statements` finds which statements about new data apply, `ledger` shares delta among them,
`fingerprint` hashes rows. The other files make one kind of statement each: `holdout`, `margins`, `norm`, `compression`,
`progressive`, `stability`, `out_of_bag`, `distances`, and the fact `error_floor`.
"""
