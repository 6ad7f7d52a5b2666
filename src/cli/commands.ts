import { defineCommand } from 'citty';

/** The command `refold`. A subcommand is loaded when it is named. */
export const refold = defineCommand({
  meta: { name: 'refold', description: 'An event log in PostgreSQL, turned into a live GraphQL API.' },
  subCommands: {
    dev: () => import('./serving/dev.ts').then(({ dev }) => dev),
    start: () => import('./serving/start.ts').then(({ start }) => start),
    migrate: () => import('./setup/migrate.ts').then(({ migrateCommand }) => migrateCommand),
    status: () => import('./monitoring/status.ts').then(({ status }) => status),
    events: () => import('./events/events.ts').then(({ events }) => events),
    history: () => import('./versions/history.ts').then(({ history }) => history),
    activate: () => import('./versions/activate.ts').then(({ activate }) => activate),
    canary: () => import('./versions/canary.ts').then(({ canary }) => canary),
    shadow: () => import('./versions/shadow.ts').then(({ shadow }) => shadow),
    rollback: () => import('./versions/rollback.ts').then(({ rollback }) => rollback),
    pause: () => import('./versions/pause.ts').then(({ pause }) => pause),
    resume: () => import('./versions/pause.ts').then(({ resume }) => resume),
    rebuild: () => import('./versions/rebuild.ts').then(({ rebuild }) => rebuild),
    snapshot: () => import('./versions/snapshot.ts').then(({ snapshot }) => snapshot),
    'dead-letters': () => import('./reactors/dead-letters.ts').then(({ deadLetters }) => deadLetters),
    reactor: () => import('./reactors/reactor.ts').then(({ reactor }) => reactor),
    verify: () => import('./versions/verify.ts').then(({ verify }) => verify),
    changes: () => import('./versions/changes.ts').then(({ changes }) => changes),
    usage: () => import('./versions/usage.ts').then(({ usage }) => usage),
    diff: () => import('./versions/diff.ts').then(({ diff }) => diff),
    retire: () => import('./versions/retire.ts').then(({ retire }) => retire),
    check: () => import('./setup/check.ts').then(({ check }) => check),
    doctor: () => import('./setup/doctor.ts').then(({ doctor }) => doctor),
    url: () => import('./setup/url.ts').then(({ url }) => url),
    schema: () => import('./setup/schema.ts').then(({ schema }) => schema),
    import: () => import('./setup/import.ts').then(({ importCommand }) => importCommand),
  },
});
