"""trnspec: a checked catalog of accelerator hardware, and the checker that says why two figures disagree."""
