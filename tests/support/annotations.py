"""Rows as the authors of benchmarks publish them."""

EGOSCHEMA = {"question": "Why?", **{f"option {i}": f"o{i}" for i in range(5)}}
NEXTQA = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"
VIDEOMME = {"question_id": "1-1", "videoID": "x", "duration": "long", "domain": "D"}
VIDEOMME |= {"task_type": "T", "question": "Q?", "answer": "B"}
VIDEOMME |= {"options": ["A. Pink.", "B. Blue.", "C. Red.", "D. Grey."]}
LONGVIDEOBENCH = {"id": "v_0", "video_path": "v.mp4", "question": "Q?", "correct_choice": 2}
LONGVIDEOBENCH |= {"candidates": ["a", "b", "c"], "duration_group": 60, "level": "L1"}
LONGVIDEOBENCH |= {"question_category": "S2A", "starting_timestamp_for_subtitles": 100.0}
LVBENCH = {"uid": 7, "question": "Who?\n(A) Ada\n(B) Bo", "answer": "B"}
LVBENCH |= {"question_type": ["reasoning", "entity recognition"]}
MLVU = {"video": "ego_35.mp4", "question": "Q?", "candidates": ["x", "y"], "answer": "y"}
MLVU |= {"question_type": "ego"}
