"""shapes.py -- what the contest runs: M, N, K of its ten tests, the first of which comes twice, and of the four
problems that it times. L is 1."""

TESTS = [(1536, 512, 7168), (256, 512, 256), (1536, 512, 7168), (3072, 1024, 1536), (7168, 1024, 256),
         (7168, 2304, 2048), (4608, 384, 7168), (7168, 384, 2304), (512, 768, 7168), (4096, 768, 512)]
TIMED = [(256, 4096, 7168), (512, 4096, 7168), (256, 3072, 4096), (512, 3072, 7168)]
