import type { OverviewPartsFragment } from '../gql/graphql.ts';
import { duration } from '../parts/format.tsx';
import { Notice } from '../parts/marks.tsx';
import { LastKnown, StoresAway } from '../parts/stores.tsx';

/** What an operator must know before anything else. */
export function Alerts({
  overview: { stalls, viewsBehind, lostOwners, stores },
}: {
  readonly overview: OverviewPartsFragment;
}) {
  const away = stores.flatMap(({ name, isAway }) => (isAway ? [name] : []));
  if (stalls.length + viewsBehind.length + lostOwners.length + away.length === 0) return null;
  return (
    <div class="alerts">
      <StoresAway names={away} />
      {stores.map((store) => (
        <LastKnown key={store.name} store={store} />
      ))}
      {stalls.slice(0, 3).map(({ position, pid, text }) => (
        <Notice key={`${position}-${pid}`} tone="bad" title="The log is held back.">
          {text}
        </Notice>
      ))}
      {stalls.length > 3 && <p>{stalls.length - 3} more sessions hold it back.</p>}
      {viewsBehind.map((text) => (
        <Notice key={text} tone="quiet" title="A view is behind.">
          {text}
        </Notice>
      ))}
      {lostOwners.map(({ name, units, seconds }) => (
        <Notice
          key={name}
          tone="warn"
          title={`${name} is silent${seconds == null ? '' : ` for ${duration(seconds)}`}.`}
        >
          It owns {units} {units === 1 ? 'unit' : 'units'} that no other process has taken over.
        </Notice>
      ))}
    </div>
  );
}
