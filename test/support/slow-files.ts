/** The slowest files, the slowest first: most of them start processes, and wait for locks and leases to end. */
export const slowFiles = [
  'test/runtime/rebuilds/rebuild-forms.test.ts',
  'test/examples/online-retail-import.test.ts',
  'test/runtime/ownership/spread.test.ts',
  'test/runtime/ownership/kill.test.ts',
  'test/refold/compiled-operations.test.ts',
  'test/cli/refusals.test.ts',
  'test/cli/processes.test.ts',
  'test/cli/operating.test.ts',
  'test/runtime/ownership/processing-lease.test.ts',
  'test/runtime/ownership/processing-advisory.test.ts',
  'test/runtime/ownership/lease.test.ts',
  'test/runtime/processors/evolve-sql-kill.test.ts',
  'test/examples/bank.test.ts',
  'test/runtime/ownership/partition-changes.test.ts',
  'test/examples/switch.test.ts',
  'test/examples/hotel-changes.test.ts',
] as const;
