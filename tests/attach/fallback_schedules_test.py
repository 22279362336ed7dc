"""The smaller rate of the fallback stays smaller under every scheduler, none of which sees it."""

from attached import HERE, AttachTest, main


class SchedulesTest(AttachTest):
    def test_every_scheduler_that_pytorch_ships(self):
        process = self.plain(HERE / "fallback" / "schedules.py", "runs")
        self.assert_exit(process)
        *wrong, last = process.stdout.splitlines()
        self.assertEqual(wrong, [], process.stderr)
        self.assertEqual(last, "checked 16")
        self.assertEqual(process.stderr.count("learning rate times 0.3"), 16, process.stderr)


if __name__ == "__main__":
    main()
