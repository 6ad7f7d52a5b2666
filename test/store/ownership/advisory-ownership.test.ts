import { createAdvisoryOwnership } from '../../../src/store/ownership/advisory-ownership.ts';
import { describeOwnership } from './ownership.contract.ts';

describeOwnership({
  kind: 'advisory',
  open: (url) => createAdvisoryOwnership({ url }),
  takeAway: async (db) => {
    await db.query({
      text: `
        select pg_terminate_backend(pid, 5000)
        from pg_stat_activity
        where datname = current_database() and application_name = 'refold-owner'`,
    });
  },
});
