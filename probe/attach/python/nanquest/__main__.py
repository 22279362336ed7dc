"""python -m nanquest"""

import sys

from nanquest.cli import main

sys.exit(main())
