import { everySubscriber } from './live-read-models.property.ts';
import { createLiveSetting } from './live-setting.ts';

everySubscriber(() => createLiveSetting());
