"""``python -m convexkernels`` is the command ``convexkernels``."""

import sys

from convexkernels.cli import main

sys.exit(main())
