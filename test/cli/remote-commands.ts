// In this order: each leaves what the next one needs.

/** Commands on the versions of the operated application, with the right that each needs, and what must be there before. */
export const versionCommands: readonly (readonly [line: string, right: string, before?: string])[] = [
  ['shadow openings@2 --one-of 5', 'SHADOW'],
  ['shadow openings@2 --stop', 'SHADOW'],
  ['canary openings@2 --percent 10 --header X-Beta', 'CANARY'],
  ['canary openings@2 --stop', 'CANARY'],
  ['activate openings@2', 'ACTIVATE'],
  ['rollback openings', 'ROLLBACK'],
  ['pause openings@1', 'PAUSE'],
  ['resume openings@1', 'PAUSE'],
  ['rebuild openings@1 --detach', 'REBUILD'],
  ['rebuild openings@1 --accept-dead-letters --detach', 'REBUILD', `update refold.rebuilds set held_reason = 'new'`],
  ['rebuild openings@1 --cancel', 'REBUILD'],
  ['snapshot take balance@1', 'SNAPSHOT'],
  ['snapshot restore balance@1', 'SNAPSHOT'],
  ['snapshot drop balance@1 --snapshot 1', 'SNAPSHOT'],
  ['retire balance@1 --grace 1', 'RETIRE'],
  ['dead-letters discard strict@1 --key a', 'DISCARD_DEAD_LETTERS'],
  ['dead-letters recall strict@1', 'DISCARD_DEAD_LETTERS'],
];

export const reactorCommands: typeof versionCommands = [
  ['reactor pause mails', 'REACTORS'],
  ['reactor rewind mails 1', 'REACTORS'],
  ['reactor skip mails 5', 'REACTORS'],
  ['reactor resume mails', 'REACTORS'],
  [
    'reactor cancel mails 4',
    'REACTORS',
    `insert into refold.reactor_instances (reactor, position, event_id, event_type, stream_id, key, step, work, types, awaited_key, received)
     values ('mails', 4, gen_random_uuid(), 'Opened', 'b', 'b', 'answer', '', '{}', '', '{}')`,
  ],
  [
    'reactor withdraw mails 2',
    'REACTORS',
    `insert into refold.reactor_versions (reactor, version, from_position) values ('mails', 1, 0), ('mails', 2, 5) on conflict do nothing`,
  ],
  ['reactor forget mails', 'REACTORS'],
];
