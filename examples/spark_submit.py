"""What spark-submit starts: dmdelta's command line, in the Spark that spark-submit sets up. See docs/clusters.md.

spark-submit … spark_submit.py run SPEC
"""

from dmdelta.cli.main import main

if __name__ == "__main__":
    main()
