"""Programs of several processes that go on from a torch.distributed.checkpoint: what is wrong with it is said by one rank, or by each
whose own part of the weights it is; ordinary resumes are silent."""

from together import TogetherTest

from attached import main

BAD, RATE = "the loaded weights hold NaN or Inf: 2.weight has", "the rate of AdamW is 0.002; the loaded state has 0.01"


class ResumedTest(TogetherTest):
    program = "resumed.py"

    def test_each_resume(self):
        self.together("save")
        for way, arguments, words, lines in (("fsdp2", ("clean",), "the loaded", 0), ("ddp", ("clean",), "the loaded", 0),
                                             ("fsdp2", ("bad",), BAD + " 1 NaN in 32 values (read from bad)", 2),
                                             ("ddp", ("bad",), BAD + " 2 NaN in 64 values (read from bad)", 1),
                                             ("fsdp2", ("clean", "new-schedule"), RATE, 1)):
            with self.subTest(way=way, arguments=arguments):
                err = self.together(way, *arguments, options=(), run_dir="-".join((way, *arguments)))
                self.assertEqual(err.count(words), lines, err)
                self.assertNotIn("no longer looked at", err)


if __name__ == "__main__":
    main()
