/** The files that take longest, the longest first: most of them start processes, and wait for locks and leases to end. */
export const slowFiles = [
  'test/runtime/rebuild-forms.test.ts',
  'test/examples/online-retail-import.test.ts',
  'test/runtime/spread.test.ts',
  'test/runtime/kill.test.ts',
  'test/cli/refusals.test.ts',
  'test/cli/processes.test.ts',
  'test/cli/operating.test.ts',
  'test/runtime/processing-lease.test.ts',
  'test/runtime/processing-advisory.test.ts',
  'test/runtime/lease.test.ts',
  'test/runtime/evolve-sql-kill.test.ts',
  'test/examples/bank.test.ts',
  'test/runtime/partition-changes.test.ts',
  'test/examples/switch.test.ts',
] as const;
