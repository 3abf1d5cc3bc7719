"""One module per verb: `add_arguments(parser)` and `run(args, app)`, with `EXAMPLES` and perhaps `DESCRIPTION`."""
